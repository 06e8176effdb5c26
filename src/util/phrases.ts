/** Writes counts and short lists in sentences for people. */

/** Returns a count with its noun: `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** Returns the clause with a capital letter at its beginning, as a sentence begins. */
export function capitalized(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}`;
}

/** Returns a list that is cut after `most` names: `a, b and 3 more`. */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most).join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/**
 * Joins sentences. Sentences that differ only in their first name become one sentence: `a is gone; the same holds for b;
 * c is not Ready; and 3 more`. Each sentence must begin with the name that it is about.
 */
export function listedSentences(sentences: readonly string[], most = 5): string {
  return listedOneByOne(groupedSentences(sentences, most), most);
}

/**
 * Returns one sentence for all sentences that differ only in their first name: `a is gone; the same holds for b, c and 3
 * more`. Each sentence must begin with the name that it is about.
 */
export function groupedSentences(sentences: readonly string[], most: number): string[] {
  const different = new Set(sentences);
  const alike = Map.groupBy(different, (sentence) => sentence.slice(nameIn(sentence).length));
  return [...alike.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const names = new Set(others.map((each) => nameIn(each).replace(/[:,]$/, '')));
    return names.size === 0 ? first : `${first}; the same holds for ${listed([...names], most)}`;
  });
}

/**
 * Joins sentences. Unlike `listedSentences`, it keeps every sentence, even if two sentences differ only in their names:
 * `a is gone; b is gone; and 3 more`.
 */
export function listedOneByOne(sentences: readonly string[], most = 5): string {
  const rest = sentences.length - most;
  return [...sentences.slice(0, most), ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}

function nameIn(sentence: string): string {
  return sentence.split(' ', 1)[0] ?? '';
}
