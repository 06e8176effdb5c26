/** Finds the version again that a version rule refused. The sentences of these rules are in the folder versions/. */

/** Matches a version as distributions write it: with a build after `+`, or after `-` where `+` is not allowed. */
const VERSION = /\bv?\d+\.\d+\.\d+(?:[+.-]?[0-9A-Za-z]+)*/g;

/** Returns true if the sentence names one of the versions as a whole: v1.36.3 is not a part of v1.36.30. */
export function namesOneOf(versions: readonly string[], sentence: string): boolean {
  const named = new Set(sentence.match(VERSION));
  return versions.some((version) => named.has(version));
}
