/** Proves which versions are refused because of objects of removed kinds, and that nothing is cached. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../../../kube/client.ts';
import { apiVersionOf, type Resource } from '../../../kube/resources.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { askRemovedApis } from './removed-apis.ts';

/** The objects that an API server serves: names by kind, and kinds by group and version. */
type Served = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const FLOW = 'flowcontrol.apiserver.k8s.io';
const TRIAL = 'k0s.k0sproject.example.com/v1beta1';

function serve(served: Served, asked: string[] = []): KubeClient {
  const objects = (resource: Resource): readonly string[] =>
    served[apiVersionOf(resource)]?.[resource.kind] ?? [];
  const client = {
    raw: (path: string) => {
      asked.push(path);
      const kinds = served[path.slice('/apis/'.length)];
      const resources = Object.keys(kinds ?? {}).flatMap((kind) => [
        { name: `${kind.toLowerCase()}s/status`, kind, namespaced: false },
        { name: `${kind.toLowerCase()}s`, kind, namespaced: false },
      ]);
      return Promise.resolve({
        status: kinds ? 200 : 404,
        body: kinds ? JSON.stringify({ resources }) : 'not found',
      });
    },
    listAll: (resource: Resource) =>
      Promise.resolve({
        metadata: {},
        items: objects(resource).map((name) => ({ metadata: { name } })),
      }),
    get: (resource: Resource, name: string) =>
      objects(resource).includes(name)
        ? Promise.resolve({ metadata: { name } })
        : Promise.reject(new StatusError({ kind: 'Status', code: 404, reason: 'NotFound' })),
  };
  return client as unknown as KubeClient;
}

async function ask(served: Served, version: string): Promise<string | undefined> {
  return await askRemovedApis({ client: serve(served) }, version);
}

const BETA2: Served = { [`${FLOW}/v1beta2`]: { FlowSchema: ['a', 'b'] } };
const LEVELS: Served = { [`${FLOW}/v1beta3`]: { PriorityLevelConfiguration: ['a', 'b', 'c'] } };
const TRIED: Served = { [TRIAL]: { RemovedCRD: ['one'] } };

test.each<[string, Served, string, string | undefined]>([
  ['nothing of it is served', {}, 'v99.99.99', undefined],
  [
    'it is served, and nothing is left of it',
    { [TRIAL]: { RemovedCRD: [] } },
    'v99.99.99',
    undefined,
  ],
  [
    'something is left',
    TRIED,
    'v99.99.99',
    'removedcrds.k0s.k0sproject.example.com v1beta1 has been removed in Kubernetes v99.99.99, but there are 1 such resources in the cluster',
  ],
  ['an older version still serves it', TRIED, 'v99.99.98+k0s.9', undefined],
  ['a candidate of the release still serves it', TRIED, 'v99.99.99-rc.1', undefined],
  [
    'a build of the release does not',
    BETA2,
    'v1.29.0+k0s.0',
    'flowschemas.flowcontrol.apiserver.k8s.io v1beta2 has been removed in Kubernetes v1.29.0, but there are 2 such resources in the cluster',
  ],
  [
    'all live on in the successor',
    { ...BETA2, [`${FLOW}/v1beta3`]: { FlowSchema: ['b', 'a', 'x'] } },
    'v1.29.0',
    undefined,
  ],
  [
    'one does not: all are counted',
    { ...BETA2, [`${FLOW}/v1beta3`]: { FlowSchema: ['a'] } },
    'v1.29.0',
    'flowschemas.flowcontrol.apiserver.k8s.io v1beta2 has been removed in Kubernetes v1.29.0, but there are 2 such resources in the cluster',
  ],
  [
    'the successor is not served',
    LEVELS,
    'v1.36.3',
    'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io v1beta3 has been removed in Kubernetes v1.32.0, but there are 3 such resources in the cluster',
  ],
  ['another kind of the same group', { [TRIAL]: { OtherCRD: ['one'] } }, 'v99.99.99', undefined],
  ['a version that is none', TRIED, 'latest', undefined],
])('%s', async (_, served, version, message) => {
  expect(await ask(served, version)).toBe(message);
});

test('each check for removed APIs asks the API server again which kinds it serves', async () => {
  const served: Record<string, Readonly<Record<string, readonly string[]>>> = {};
  const asked: string[] = [];
  const client = serve(served, asked);
  const askAgain = () => askRemovedApis({ client }, 'v99.99.99');
  expect(await askAgain()).toBeUndefined();
  const once = asked.length;
  Object.assign(served, TRIED);
  expect(await askAgain()).toContain('removedcrds');
  expect(asked.length).toBe(2 * once);
});

test.each([403, 429, 503])(
  'Refit draws no conclusion about removed APIs if the API server answers %i',
  async (code) => {
    const client = {
      raw: () => Promise.resolve({ status: code, body: '' }),
    } as unknown as KubeClient;
    const answer: unknown = await askRemovedApis({ client }, 'v99.99.99').catch((e: unknown) => e);
    expect(answer).toBeInstanceOf(StatusError);
    expect((answer as StatusError).code).toBe(code);
  },
);

test('Refit draws no conclusion about removed APIs if a list request fails', async () => {
  const refused = new StatusError({ kind: 'Status', code: 500, message: 'etcd' });
  const client = {
    ...serve(TRIED),
    listAll: () => Promise.reject(refused),
  } as unknown as KubeClient;
  await expect(askRemovedApis({ client }, 'v99.99.99')).rejects.toBe(refused);
});
