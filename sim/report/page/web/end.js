showFrame();
showOnPaper();
document.documentElement.dataset.ready = "true";
})();
