/** Hides secrets in a text of somebody who knows them, in each form in which such a text may quote them. */

/**
 * The fewest characters of a form that is hidden. A shorter form would match by chance, and hide more of the text than
 * of the secret.
 */
const SHORTEST = 4;

/** Returns the forms in which a text may quote the value, the longest first. */
export function formsOfSecret(value: Buffer | string): readonly string[] {
  const bytes = Buffer.from(value);
  const text = bytes.toString('utf8');
  const trimmed = text.trim();
  const forms = [
    text,
    trimmed,
    text.replaceAll(/\s+/g, ' ').trim(),
    JSON.stringify(trimmed).slice(1, -1),
    encodeURIComponent(trimmed.toWellFormed()),
    bytes.toString('base64'),
    bytes.toString('base64').split('=')[0] ?? '',
    bytes.toString('base64url'),
    Buffer.from(trimmed).toString('base64'),
    bytes.toString('hex'),
  ];
  return [...new Set(forms)]
    .filter((form) => form.length >= SHORTEST)
    .toSorted((a, b) => b.length - a.length);
}

/** Returns the text with three asterisks instead of each of the forms, and of the padding after it. */
export function withoutForms(text: string, forms: readonly string[]): string {
  return forms
    .reduce((shown, form) => shown.replaceAll(form, '***'), text)
    .replaceAll(/\*\*\*={1,2}/g, '***');
}
