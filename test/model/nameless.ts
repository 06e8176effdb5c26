/** Replaces a node's name in objects, so that equal nodes share their states. */
import type { KubeObject } from '../../src/kube/resources.ts';

/** Stands where the name of the node would; no real text holds it. */
export const ANY_NODE = '%node%';

export function named(object: KubeObject, name: string): KubeObject {
  return JSON.parse(JSON.stringify(object).replaceAll(ANY_NODE, name)) as KubeObject;
}

export function nameless(object: KubeObject, name: string): KubeObject {
  return JSON.parse(JSON.stringify(object).replaceAll(wordOf(name), ANY_NODE)) as KubeObject;
}

/** Finds a name where it is a word of its own, as in `w1-uid`. */
export function wordOf(name: string): RegExp {
  return new RegExp(`\\b${name}\\b`, 'g');
}
