/** The key of an object in stores and queues: `namespace/name`, or `name` when cluster-scoped. */
import type { KubeObject } from './types.ts';

export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function splitKey(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
