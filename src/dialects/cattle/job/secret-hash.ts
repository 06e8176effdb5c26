/** Owns the short hash of a Secret's content, as kubectl makes it for names of generated Secrets. */
import { createHash } from 'node:crypto';
import type { Secret } from '../../../kube/types.ts';
import { stableStringify } from '../../../util/json.ts';

/** Letters for digits that could form words. */
const LETTERS: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

/** Ten characters; metadata but the name does not count. */
export function secretHash({ metadata, type = '', data, immutable }: Secret): string {
  const content = {
    data: data ?? null,
    ...(immutable === undefined ? {} : { immutable }),
    kind: 'Secret',
    name: metadata.name,
    type,
  };
  const hex = createHash('sha256')
    .update(escapeAsGo(stableStringify(content)))
    .digest('hex');
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (digit) => LETTERS[digit] ?? digit);
}

/** Go writes JSON so that it can stand in HTML. */
function escapeAsGo(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
