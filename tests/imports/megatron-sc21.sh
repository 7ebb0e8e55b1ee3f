#!/bin/bash
# In the style of Megatron-LM's examples/sc21/run_table_1.sh and CONFIG.sh: options in a variable, chosen by model size.
MODEL_SIZE=39B
if [ ${MODEL_SIZE} == "1.7B" ]; then
    TP=1
    PP=1
    NLS=24
elif [ ${MODEL_SIZE} == "39B" ]; then
    TP=8
    PP=2
    MBS=4
    GBS=1536
    NLS=48
    HS=8192
    NAH=64
    DDP=local
    NNODES=64
    MEGATRON_EXTRA_PARAMS="--activations-checkpoint-method uniform "
else
    echo "Invalid configuration"
    exit 1
fi
export MEGATRON_PARAMS=" ${MEGATRON_EXTRA_PARAMS} \
	--tensor-model-parallel-size ${TP} \
	--pipeline-model-parallel-size ${PP} \
	--micro-batch-size ${MBS} \
	--global-batch-size ${GBS} \
	--num-layers ${NLS} \
	--hidden-size ${HS} \
	--num-attention-heads ${NAH} \
	--DDP-impl ${DDP} \
	--vocab-file <path to vocabulary> \
	--seq-length 2048 \
	--max-position-embeddings 2048 \
	--fp16 \
	--loss-scale 8192 "
sbatch --nodes=${NNODES} --export=MEGATRON_PARAMS SRUN.sh
