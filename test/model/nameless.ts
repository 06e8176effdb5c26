/** Replaces a node's name in objects, so that equal nodes share their states. */
import type { KubeObject } from '../../src/kube/resources.ts';

/** The placeholder for the name of the node. No real text contains it. */
export const ANY_NODE = '%node%';

export function named(object: KubeObject, name: string): KubeObject {
  return JSON.parse(JSON.stringify(object).replaceAll(ANY_NODE, name)) as KubeObject;
}

export function nameless(object: KubeObject, name: string): KubeObject {
  return JSON.parse(JSON.stringify(object).replaceAll(wordOf(name), ANY_NODE)) as KubeObject;
}

/** Returns an expression that finds the name as a whole word, as in `w1-uid`. */
export function wordOf(name: string): RegExp {
  return new RegExp(`\\b${name}\\b`, 'g');
}
