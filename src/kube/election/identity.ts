/** Names a candidate of an election: its host first, so that people see where the leader runs. */

/** k0s writes the identity into a label as well. */
const MOST = 63;

/** A valid label value. One of `parts` must be new for each start of a process. */
export function leaderIdentity(host: string, ...parts: readonly string[]): string {
  const rest = parts.map(clean).join('_');
  const name = clean(host)
    .slice(0, MOST - 1 - rest.length)
    .replace(/[^A-Za-z0-9]+$/, '');
  return name === '' ? rest : `${name}_${rest}`;
}

function clean(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}
