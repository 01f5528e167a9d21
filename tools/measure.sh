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
    "$bin/antiphon-lab" reproduce "$paper" --data "$data" --out "$kept"
    cp "$kept/$paper.html" "$kept/$paper.json" "$results"
done
told truncation.json "$bin/antiphon-lab" bench truncation --data "$data/wikitext2_test.raw" \
    --keep k=32,k=320,k=461,k=3200,p=0.95 --plot docs/truncation.svg
told coupled.json "$bin/antiphon-lab" bench coupled --data "$data" --results "$kept/coupled.jsonl" --plot docs/coupled.svg
told retrieval.json "$bin/antiphon-lab" bench retrieval --data "$data"
"$bin/antiphon-lab" reproduce picture "$results/x-cosd.json" docs/speed.svg
"$bin/python" tools/figures.py --write
