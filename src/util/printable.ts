/**
 * Makes untrusted text safe for a terminal. A text from a node must not control the terminal of its
 * reader.
 */

// The pattern lists the allowed characters, because `\p{Cc}` and `\p{Bidi_Control}` would load
// tables that stay in memory.
/**
 * Matches control characters (C0 and C1), characters that change the direction of text, and invisible characters. The
 * invisible characters are: spaces and operators without width; letters and marks without a glyph; variation selectors,
 * except U+FE0F, which emoji need; and the tags, variation selectors, and marks of music and shorthand that JavaScript
 * writes as two characters. The pattern also matches U+FFFE and U+FFFF, which are not characters. An XML document that
 * contains one of them cannot be read.
 */
const STEERING =
  /\uDB40[\uDC00-\uDDEF]|\uD834[\uDD73-\uDD7A]|\uD82F[\uDCA0-\uDCA3]|\u17B4|\u17B5|(?!\uFE0F)[^ -~\xA0-\xAC\xAE-\u034E\u0350-\u061B\u061D-\u115E\u1161-\u180A\u1810-\u200A\u200C-\u200D\u2010-\u2029\u202F-\u205F\u2070-\u3163\u3165-\uFDFF\uFE10-\uFEFE\uFF00-\uFF9F\uFFA1-\uFFEF\uFFFC-\uFFFD]/g;

/**
 * Returns the text for a terminal. Tabs and line breaks become blanks, and other control characters
 * become the replacement character.
 */
export function printable(text: string): string {
  return text.replaceAll(STEERING, (char) => (/\s/.test(char) ? ' ' : '\uFFFD'));
}

/**
 * Returns the same JSON with escapes for all control characters, including those that
 * JSON.stringify does not escape.
 */
export function escapeSteering(json: string): string {
  return json.replaceAll(STEERING, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
