/** Whether the object of a node exists. In the model, an object that does not exist is an object with a mark that nobody sees. */
import type { KubeObject } from '../../src/kube/resources.ts';

export const ABSENT_ANNOTATION = 'model/absent';

export function isPresent({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ABSENT_ANNOTATION] === undefined;
}
