#!/bin/bash
#SBATCH --job-name=gpt3
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=8
#SBATCH --time=04:00:00

# GPT-3 of 175 billion parameters on 128 GPUs.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-16}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=6000
CHECKPOINT_PATH=$1
DATA_PATH=$4
TP=8
PP=8

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr $MASTER_ADDR
    --master_port $MASTER_PORT
)

GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto
)

TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size $((WORLD_SIZE / (TP * PP) * 48))
    --train-iters 500000
    --weight-decay 0.1
    --adam-beta1 0.9
    --adam-beta2 0.95
    --init-method-std 0.006
    --clip-grad 1.0
    --bf16
    --lr 6.0e-5
    --lr-decay-style cosine
    --min-lr 6.0e-6
    --lr-warmup-fraction .001
    --lr-decay-iters 430000
    --recompute-granularity full
    --recompute-method uniform
    --use-distributed-optimizer
    --overlap-grad-reduce
)

MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size ${TP}
	--pipeline-model-parallel-size ${PP}
	--sequence-parallel
)

DATA_ARGS="
    --data-path $DATA_PATH \
    --vocab-file vocab.json \
    --merge-file merges.txt \
    --vocab-size 50257 \
    --split 949,50,1
"

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]} \
    $DATA_ARGS \
    --save "$CHECKPOINT_PATH"   \
    --log-interval 100
