/**
 * The kind that the original's own tests use, with one object. The original lists this kind as removed in v99.99.99.
 * All tests share one definition, because kubectl caches for minutes whether objects of a kind are in namespaces.
 */
import { expect, vi } from 'vitest';
import { apply, kubectlAs } from '../../testenv/control-plane.ts';

const NAME = 'removedcrds.k0s.k0sproject.example.com';
const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${NAME}}
spec:
  group: k0s.k0sproject.example.com
  names: {kind: RemovedCRD, plural: removedcrds, singular: removedcrd, listKind: RemovedCRDList}
  scope: Cluster
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`;
export const REMOVED_OBJECT = 'left-over';
const OBJECT = `{apiVersion: k0s.k0sproject.example.com/v1beta1, kind: RemovedCRD, metadata: {name: ${REMOVED_OBJECT}}}`;

/** The sentence of the original about this kind in the status of the Plan. */
export const REMOVED_KIND_FOUND =
  'removedcrds.k0s.k0sproject.example.com v1beta1 has been removed in Kubernetes v99.99.99, ' +
  'but there are 1 such resources in the cluster';

/** Resolves when the object exists. The disposal removes the kind and the object. */
export async function installRemovedKind(): Promise<AsyncDisposable> {
  await apply(DEFINITION);
  await vi.waitFor(async () => await apply(OBJECT), { timeout: 150_000, interval: 250 });
  return {
    async [Symbol.asyncDispose]() {
      expect(await kubectlAs('admin', ['delete', 'crd', NAME, '--wait=true'])).toMatchObject({
        ok: true,
      });
    },
  };
}
