#!/bin/bash
# In the style of Megatron-LM's examples/llama/train_llama3_8b_h100_fp8.sh: its options, chosen by conditions.
CHECKPOINTS=${1:-"checkpoints/llama3"}
TOKENIZER=${2:-"MOCK"}
TP_SIZE=2
CP_SIZE=1
DTYPE="${DTYPE:-bf16}"
NUM_LAYERS=32

TORCHRUN_ARGS=(--nproc_per_node 8 --nnodes 1)
MODEL_ARGS=(
    --use-mcore-models
    --num-layers $NUM_LAYERS
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --rotary-base 500000
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm
    --attention-backend fused
    --untie-embeddings-and-output-weights
    --disable-bias-linear
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
    --train-samples 1953125000
    --lr 0.00015
    --bf16
    --grad-reduce-in-bf16
    --cross-entropy-loss-fusion
    --manual-gc
)
DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    DTYPE_ARGS+=(
        "--fp8-format hybrid"
        "--fp8-param-gather"
    )
elif [ $NUM_LAYERS -gt 100 ]; then
    NO_SUCH_BRANCH=1
fi
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP_SIZE
    --context-parallel-size $CP_SIZE
    # --pipeline-model-parallel-size 4
    --sequence-parallel
)
TRAINING_ARGS+=("--use-distributed-optimizer" --overlap-grad-reduce --overlap-param-gather)
if [ ! -f "pretrain_gpt.py" ]; then
    echo "Error: pretrain_gpt.py isn't here"
    exit 1
fi
case "$TOKENIZER" in
    MOCK|none) DATA_ARGS=(--mock-data "--tokenizer-type NullTokenizer" --vocab-size 128255) ;;
    *) DATA_ARGS=(--tokenizer-model $TOKENIZER) ;;
esac
torchrun "${TORCHRUN_ARGS[@]}" pretrain_gpt.py ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} \
    ${DTYPE_ARGS[@]} ${PARALLEL_ARGS[@]} ${DATA_ARGS[@]} --save "$CHECKPOINTS"
