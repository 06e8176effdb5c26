/** The answers to a call that updates a Machine. */
import { UPDATE_ANNOTATION } from '../../../src/dialects/capi/plan/machine-update.ts';
import type { Node } from '../../../src/kube/resources.ts';

export const underWay = (message: string): object => ({
  status: 'Success',
  message,
  retryAfterSeconds: 2,
});

export const failed = (message: string): object => ({
  status: 'Failure',
  message,
  retryAfterSeconds: 0,
});

export function withoutRequest(node: Node): Node {
  const { [UPDATE_ANNOTATION]: _request, ...annotations } = node.metadata.annotations ?? {};
  return { ...node, metadata: { ...node.metadata, annotations } };
}
