// The page's own scripts are put together in one function, so that nothing leaks into the page.
(function () {
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const result = data.result;
const step = result.step_time_s;
