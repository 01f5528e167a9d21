#!/bin/sh
# Every figure of the documents again: `sh tools/measure.sh DATA`, with the folder of the data sets; an hour or so of one core.
# What was measured is kept in reproduced/, and the same command goes on after a stop. Commit the code first: results name it.
set -e
data=${1:?"name the folder of the data sets: sh tools/measure.sh DATA"}
bin=.venv/bin
kept=reproduced
results=docs/results
mkdir -p "$kept"

told() { # FILE COMMAND...: the last line of what a command says is its figures
    file=$1
    shift
    "$@" --json | tail -n 1 | "$bin/python" -m json.tool --indent 1 > "$kept/$file"
    mv "$kept/$file" "$results/$file"
}

for paper in tslt x-cosd concord; do
    "$bin/antiphon" reproduce "$paper" --data "$data" --out "$kept"
    cp "$kept/$paper.html" "$kept/$paper.json" "$results"
done
told speculative.json "$bin/antiphon" bench speculative --data "$data/wikitext2_test.raw" \
    --methods dssd,xcosd-e,coupled,coupled-tree --draft-length 2,4,auto \
    --link x-cosd@100 --link 4g --link 3g --prompts 12 --tokens 32 --results "$kept/speculative.jsonl"
told temperatures.json "$bin/antiphon" bench speculative --data "$data/wikitext2_test.raw" \
    --methods dsd,dssd,xcosd,xcosd-e,coupled,coupled-tree --draft-length 2 --expansion 2,2,2 --expansion 4,2,1 \
    --temperature 1,0.3,0 --link x-cosd@100 --prompts 12 --tokens 32 --results "$kept/temperatures.jsonl"
told truncation.json "$bin/antiphon" bench truncation --data "$data/wikitext2_test.raw" \
    --keep k=32,k=320,k=461,k=3200,p=0.95 --plot docs/truncation.svg
told retrieval.json "$bin/antiphon" bench retrieval --data "$data"
"$bin/antiphon" reproduce picture "$results/x-cosd.json" docs/speed.svg
"$bin/python" tools/figures.py --write
