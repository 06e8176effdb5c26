/** Tests the health check that a CEL expression is true for each selected object. */
import { expect, test } from 'vitest';
import type { KubeClient, ListOptions } from '../kube/client.ts';
import { type KubeObject, pathOf, type Resource } from '../kube/resources.ts';
import { AnswerTooLarge, StatusError, TransportError } from '../kube/status-error.ts';
import { askResources } from './ask-resources.ts';
import type { CheckFinding, ResourceCheck } from './checks.ts';

const KINDS = [
  { name: 'statefulsets/scale', kind: 'StatefulSet', namespaced: true },
  { name: 'statefulsets', kind: 'StatefulSet', namespaced: true },
  { name: 'storageclasses', kind: 'StorageClass', namespaced: false },
  { name: 'secrets', kind: 'Secret', namespaced: true },
];

const SECRETS = { apiVersion: 'v1', objectKind: 'Secret' };

interface Server {
  readonly objects?: readonly KubeObject[];
  readonly status?: number;
  readonly isForbidden?: boolean;
  /** Records the bytes of each page that the check has received. */
  readonly got?: number[];
}

/**
 * Returns a client that serves the objects in pages of the requested size, unless a page has too many bytes. It records
 * the requested paths.
 */
function serving(
  { objects = [], status = 200, isForbidden = false, got }: Server,
  asked: string[],
) {
  const raw = async (path: string): Promise<{ status: number; body: string }> => {
    asked.push(path);
    return await Promise.resolve({ status, body: JSON.stringify({ resources: KINDS }) });
  };
  const list = async (resource: Resource, options: ListOptions = {}) => {
    const { namespace, labelSelector, limit = Number.POSITIVE_INFINITY } = options;
    const { mostBytes = Number.POSITIVE_INFINITY } = options;
    asked.push(`${pathOf(resource, { namespace })}?${labelSelector}`);
    if (isForbidden) throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden' });
    const start = Number(options.continue ?? 0);
    const end = start + limit;
    const metadata = end < objects.length ? { continue: String(end) } : {};
    const items = objects.slice(start, end);
    const bytes = got === undefined ? 0 : JSON.stringify(items).length;
    if (bytes > mostBytes)
      throw new TransportError('GET', {
        cause: new AnswerTooLarge(`more than ${mostBytes} bytes`),
      });
    got?.push(bytes);
    return await Promise.resolve({ items, metadata });
  };
  return { raw, list } as unknown as KubeClient;
}

async function ask(
  more: Partial<ResourceCheck>,
  server: Server,
  asked: string[] = [],
  roundMs = Number.POSITIVE_INFINITY,
): Promise<CheckFinding> {
  const check: ResourceCheck = {
    kind: 'resources',
    name: 'databases',
    apiVersion: 'apps/v1',
    objectKind: 'StatefulSet',
    expression: 'object.status.readyReplicas == object.spec.replicas',
    ...more,
  };
  const { signal } = new AbortController();
  return await askResources(serving(server, asked), check, signal, roundMs);
}

function sets(...ready: readonly (number | undefined)[]): KubeObject[] {
  return ready.map((readyReplicas, index) => {
    const status = readyReplicas === undefined ? {} : { readyReplicas };
    return { metadata: { name: `s${index}`, namespace: 'db' }, spec: { replicas: 3 }, status };
  });
}

test.each<[string, Partial<ResourceCheck>, Server, CheckFinding]>([
  [
    'all pass',
    {},
    { objects: sets(3, 3) },
    { state: 'passing', message: 'all 2 StatefulSet objects pass' },
  ],
  [
    'two fail, and one cannot be judged',
    {},
    { objects: sets(3, 2, undefined, 0) },
    {
      state: 'failing',
      message: '2 of 4 StatefulSet objects fail: db/s1 (2 == 3), db/s3 (0 == 3)',
    },
  ],
  [
    'many fail',
    {},
    { objects: sets(0, 0, 0, 0, 0) },
    {
      state: 'failing',
      message:
        '5 of 5 StatefulSet objects fail: db/s0 (0 == 3), db/s1 (0 == 3), db/s2 (0 == 3) and 2 more',
    },
  ],
  [
    'a field is missing',
    {},
    { objects: sets(3, undefined) },
    { state: 'unknown', message: 'db/s1: No such key: readyReplicas, at character 15' },
  ],
  [
    'nothing is selected',
    {},
    {},
    { state: 'failing', message: 'it selects no object of the kind StatefulSet' },
  ],
  [
    'values of Secrets stay hidden',
    {
      apiVersion: 'v1',
      objectKind: 'Secret',
      expression: 'object.data.token == "x"',
    },
    {
      objects: [
        {
          metadata: { name: 's', namespace: 'db' },
          data: { token: 'c2Vj' },
        } as object as KubeObject,
      ],
    },
    { state: 'failing', message: '1 of 1 Secret objects fail: db/s' },
  ],
  [
    'the right is missing',
    { namespace: 'db' },
    { isForbidden: true },
    {
      state: 'unknown',
      message:
        'Refit lacks the right to list statefulsets.apps in the namespace db; grant it with the value health.resources of the chart, or a role of your own',
    },
  ],
  [
    'the group is not served',
    {},
    { status: 404 },
    { state: 'unknown', message: 'the API server does not serve apps/v1' },
  ],
  [
    'discovery fails',
    {},
    { status: 503 },
    {
      state: 'unknown',
      message: 'the API server does not say which kinds apps/v1 has: it answered 503',
    },
  ],
  [
    'the kind is not served',
    { objectKind: 'Statefulset' },
    {},
    { state: 'unknown', message: 'the API server serves no kind Statefulset in apps/v1' },
  ],
  [
    'a namespace for a kind without',
    { objectKind: 'StorageClass', namespace: 'db' },
    {},
    {
      state: 'unknown',
      message: 'StorageClass is a kind without namespaces, but the check names a namespace',
    },
  ],
  [
    'a wrong expression',
    { expression: 'nope' },
    {},
    {
      state: 'unknown',
      message: 'the expression is wrong: Unknown variable: nope, at character 1',
    },
  ],
  [
    'an endless expression',
    { expression: 'object.metadata.name.matches("^(a+)+$")' },
    { objects: [{ metadata: { name: `${'a'.repeat(60)}!` } }, ...sets(3)] },
    {
      state: 'unknown',
      message: expect.stringMatching(/^a{60}!: the evaluation was stopped: /) as string,
    },
  ],
  [
    'too many objects',
    { expression: 'true' },
    { objects: Array.from({ length: 5_001 }, () => ({ metadata: { name: 's' } })) },
    {
      state: 'unknown',
      message: 'it selects more than 5000 objects: narrow it with namespace or selector',
    },
  ],
])('%s', async (_title, check, server, expected) => {
  expect(await ask(check, server)).toEqual(expected);
});

test('it asks for the kind, then page by page for the selected objects', async () => {
  const asked: string[] = [];
  const objects = sets(...Array.from({ length: 501 }, () => 3));
  const selector = { matchLabels: { app: 'db' } };
  const { message } = await ask({ namespace: 'db', selector }, { objects }, asked);
  expect(message).toBe('all 501 StatefulSet objects pass');
  const page = '/apis/apps/v1/namespaces/db/statefulsets?app=db';
  expect(new Set(asked)).toEqual(new Set(['/apis/apps/v1', page]));
  expect(asked.length).toBeGreaterThan(2);
  expect(asked.length).toBeLessThan(10);
});

/**
 * Returns an object with a text of this size. The expression must not read the text, because that could exceed the time
 * limit on a busy machine.
 */
function large(index: number, bytes: number): KubeObject {
  const metadata = { name: `c${index}`, labels: { bytes: `${bytes}` } };
  return { metadata, text: 'x'.repeat(bytes) } as KubeObject;
}

test('each object is judged, but no page is larger than 8 MiB, however large the objects are', async () => {
  const got: number[] = [];
  const objects = Array.from({ length: 90 }, (_each, index) =>
    large(index, index >= 40 && index < 70 ? 600_000 : 10),
  );
  // The expression reads no long text, because its evaluation has a time limit.
  const expression = 'int(object.metadata.labels.bytes) < 1000';
  const { message } = await ask({ expression }, { objects, got });
  expect(message).toMatch(/^30 of 90 StatefulSet objects fail: /);
  expect(Math.max(...got)).toBeLessThanOrEqual(8 * 1024 * 1024);
  expect(got.length).toBeLessThan(25);
});

test('a few large objects do not make the pages of all later objects small', async () => {
  const asked: string[] = [];
  const objects = Array.from({ length: 2_000 }, (_each, index) =>
    large(index, index >= 100 && index < 103 ? 3_000_000 : 10),
  );
  const { message } = await ask({ expression: 'true' }, { objects, got: [] }, asked);
  expect(message).toBe('all 2000 StatefulSet objects pass');
  expect(asked.length).toBeLessThan(60);
});

test.each<[string, Partial<ResourceCheck>]>([
  ['StatefulSet', {}],
  ['Secret', SECRETS],
])('a %s that is too large for a page is told with the remedy', async (kind, check) => {
  const objects = [large(0, 10), large(1, 9 * 1024 * 1024)];
  const asked = ask({ ...check, expression: 'true' }, { objects, got: [] });
  await expect(asked).rejects.toThrow(
    `an answer with a single ${kind} object has more than 8 MiB: leave that object out with namespace or selector`,
  );
});

test('kinds of the core group', async () => {
  const asked: string[] = [];
  const check = { apiVersion: 'v1', objectKind: 'Secret', expression: 'true' };
  await ask(check, { objects: sets(3) }, asked);
  expect(asked).toEqual(['/api/v1', '/api/v1/secrets?']);
});

test('a round ends once its time is over', async () => {
  const found = await ask({ expression: 'true' }, { objects: sets(3, 3) }, [], 0);
  const message = 'the evaluation was stopped: it took more than 0 s of CPU time for 1 objects';
  expect(found).toEqual({ state: 'unknown', message });
});

test('other work gets its turn while many objects are evaluated', async () => {
  const expression = 'object.list.all(a, a >= 0)';
  const list = Array.from({ length: 50 }, (_each, index) => index);
  const object = { metadata: { name: 's' }, list };
  let turns = 0;
  const ticks = setInterval(() => turns++, 1);
  const { state } = await ask(
    { expression },
    { objects: Array.from({ length: 1_000 }, () => object) },
  );
  clearInterval(ticks);
  expect(state).toBe('passing');
  expect(turns).toBeGreaterThan(1);
});
