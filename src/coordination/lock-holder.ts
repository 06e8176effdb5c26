/**
 * Names Refit as the holder of a lock. The name stays the same when the leader changes, so that the next leader
 * recognizes the lock as a lock of Refit.
 */

const PREFIX = 'refit';

/** Returns the name of the installation that carries out plans of these dialects. `lease` is the Lease of its election, if it has one. */
export function lockHolder(
  dialects: readonly string[],
  lease?: { readonly namespace: string; readonly name: string },
): string {
  const place = lease ? [lease.namespace, lease.name] : [];
  return [PREFIX, dialects.join('+'), ...place].join('/');
}

/** Returns true if the holder is an installation that carries out plans of this dialect. */
export function isHolderFor(dialect: string, holder: string): boolean {
  const [prefix, dialects = ''] = holder.split('/');
  return prefix === PREFIX && dialects.split('+').includes(dialect);
}
