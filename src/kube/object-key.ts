/** Owns the text under which an object is stored and queued: `namespace/name`, or `name` for cluster-scoped ones. */
import type { KubeObject } from './types.ts';

export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace ? `${namespace}/${name}` : name;
}
