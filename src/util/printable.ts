/** Makes foreign text safe for a terminal: text from a node must not control the reader's screen. */

/** Control characters (C0 and C1), and those that change the direction of text. */
const STEERING = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Tabs and line breaks become blanks, other control characters the replacement character. */
export function printable(text: string): string {
  return text.replaceAll(STEERING, (char) => (/\s/.test(char) ? ' ' : '\uFFFD'));
}
