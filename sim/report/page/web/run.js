// The page of a run.

showSummary();
showWholeRun();
showEfficiency();
showTimeline();
showStages();
showMemory();
showCommunication();
showKernels();
showChanges();
showAnswers();
showPlan();
