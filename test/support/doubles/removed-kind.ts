/**
 * The kind that the original's own tests use: one that is gone in v99.99.99, with one object of it. There is one
 * definition for all tests: kubectl remembers for minutes whether objects of a kind are in namespaces.
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

/** What the original says of it in the status of the Plan. */
export const REMOVED_KIND_FOUND =
  'removedcrds.k0s.k0sproject.example.com v1beta1 has been removed in Kubernetes v99.99.99, ' +
  'but there are 1 such resources in the cluster';

/** Resolves once the object is there; kind and object are gone after the disposal. */
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
