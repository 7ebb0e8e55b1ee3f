// The page's own scripts are put together in one function, so that nothing leaks into the page.
(function () {
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
