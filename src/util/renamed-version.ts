/** Puts another version into addresses and paths that name one. */

/**
 * Returns the text with the version `to` wherever it names `from`, with or without its `v`, also if a plus sign is
 * encoded as in an address. Returns undefined if the text does not name `from`. A longer version that begins with `from`,
 * such as v1.36.10 for v1.36.1, is another version.
 */
export function withOtherVersion(text: string, from: string, to: string): string | undefined {
  const before = from.replace(/^v/, '');
  const after = to.replace(/^v/, '');
  let isNamed = false;
  const pattern = new RegExp(
    `(?<![\\d.])${RegExp.escape(before).replaceAll('\\+', '(?:\\+|(%2[Bb]))')}(?!\\d|\\.\\d)`,
    'g',
  );
  const renamed = text.replaceAll(pattern, (_found, encoded: unknown) => {
    isNamed = true;
    return typeof encoded === 'string' ? after.replaceAll('+', encoded) : after;
  });
  return isNamed ? renamed : undefined;
}
