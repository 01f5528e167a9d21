// The noise of a token as docs/protocol.md says it, by operations on 32 bits: a twin of antiphon.core.noise for test_coupling.
// Reads [[seed, prompt, chat, choice, position, [id, ...]], ...] and writes, for each, [key, [upper 32 bits, lower 20 bits], ...].

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The four words of the key of an answer. `seed` is a decimal string. */
function answerKey(seed, prompt, chat, choice) {
  const head = Buffer.alloc(13);
  head.writeBigUInt64LE(BigInt(seed), 0);
  head.writeUInt32LE(choice, 8);
  head.writeUInt8(chat ? 1 : 0, 12);
  const digest = createHash("sha256").update(head).update(prompt, "utf8").digest();
  return [0, 4, 8, 12].map((place) => digest.readUInt32LE(place));
}

/** The upper 32 bits of a product of two words. */
function high(first, second) {
  const [a, b, c, d] = [first >>> 16, first & 0xffff, second >>> 16, second & 0xffff];
  const middle = Math.imul(a, d) >>> 0;
  const carried = (Math.imul(b, c) >>> 0) + (Math.imul(b, d) >>> 16) + (middle & 0xffff);
  return (Math.imul(a, c) + (middle >>> 16) + Math.floor(carried / 0x10000)) >>> 0;
}

/** Philox4x32-10. */
function philox(low, high_, counter) {
  let words = counter;
  for (let round = 0; round < 10; round++) {
    const [first, second, third, fourth] = words;
    words = [
      high(0xcd9e8d57, third) ^ second ^ low,
      Math.imul(0xcd9e8d57, third),
      high(0xd2511f53, first) ^ fourth ^ high_,
      Math.imul(0xd2511f53, first),
    ].map((word) => word >>> 0);
    low = (low + 0x9e3779b9) >>> 0;
    high_ = (high_ + 0xbb67ae85) >>> 0;
  }
  return words;
}

function mixed(id, first, second) {
  let word = id + first;
  word = Math.imul(word ^ (word >>> 17), 0xed5ad4bb);
  word ^= second;
  word = Math.imul(word ^ (word >>> 11), 0xac4c1b51);
  word = Math.imul(word ^ (word >>> 15), 0x31848bab);
  return (word ^ (word >>> 14)) >>> 0;
}

const answers = JSON.parse(readFileSync(0, "utf8")).map(([seed, prompt, chat, choice, position, ids]) => {
  const key = answerKey(seed, prompt, chat, choice);
  const keys = philox(key[0], key[1], [position, 0, key[2], key[3]]);
  return [key, ids.map((id) => [mixed(id, keys[0], keys[1]), mixed(id, keys[2], keys[3]) >>> 12])];
});
process.stdout.write(JSON.stringify(answers));
