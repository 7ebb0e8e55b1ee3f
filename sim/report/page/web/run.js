// The page of a run.

showSummary();
showEfficiency();
showTimeline();
showStages();
showMemory();
showCommunication();
showKernels();
showChanges();
showPlan();
