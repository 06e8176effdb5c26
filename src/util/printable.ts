/** Owns making the text of others fit for a terminal: a node's own words must not steer the screen of who reads them. */

/** Control characters, those of C1 too, and what turns the direction of writing. */
const STEERING = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Tabs and line breaks become blanks, everything else that a terminal would obey the replacement character. */
export function printable(text: string): string {
  return text.replaceAll(STEERING, (char) => (/\s/.test(char) ? ' ' : '\uFFFD'));
}
