/** Builds the objects that many cases send. */

export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/$ns/leases';
export const NODES = '/api/v1/nodes';
export const PODS = '/api/v1/namespaces/$ns/pods';
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const WIDGETS = '/apis/$group/v1/namespaces/$ns/widgets';

export const lease = (name: string, spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, ...metadata },
  spec,
});

export const node = (metadata: object = {}, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: '$id', ...metadata },
  ...more,
});

export const widget = (
  name: string,
  spec: object = {},
  metadata: object = {},
  more: object = {},
): object => ({
  apiVersion: '$group/v1',
  kind: 'Widget',
  metadata: { name, ...metadata },
  spec,
  ...more,
});

/**
 * Returns a definition of Widgets in the API group of the test file. `spec` and `status` are the schemas of these
 * members.
 */
export const widgetDefinition = (
  spec: object,
  {
    status,
    version = {},
    scope = 'Namespaced',
  }: { status?: object; version?: object; scope?: string } = {},
): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.$group' },
  spec: {
    group: '$group',
    names: { plural: 'widgets', kind: 'Widget' },
    scope,
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec, ...(status && { status }) } },
        },
        ...(status && { subresources: { status: {} } }),
        ...version,
      },
    ],
  },
});

/** Returns the definition as a fixture that all cases of a file share. */
export const widgetFixture = (
  definition: object,
): { path: string; object: object; ready: string } => ({
  path: DEFINITIONS,
  object: definition,
  ready: '/apis/$group/v1/widgets',
});

export const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
