/** Tests the health check that a CEL expression is true for each selected object. */
import { expect, test } from 'vitest';
import type { KubeClient, ListOptions, RequestOptions } from '../kube/client.ts';
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
  /** The error of each list. */
  readonly error?: Error;
  /** What the API server answers in place of the next page if there is none. */
  readonly last?: string;
  /** Records the numbers of objects that the check requests. */
  readonly limits?: number[];
  /** Records the bytes of each page that the check has received. */
  readonly got?: number[];
}

/**
 * Returns a client that serves the objects in pages of the requested size, unless a page has too many bytes. It records
 * the requested paths.
 */
function serving(
  { objects = [], status = 200, isForbidden = false, error, last, got, limits }: Server,
  asked: string[],
) {
  const raw = async (path: string, { abort }: RequestOptions = {}) => {
    abort?.throwIfAborted();
    asked.push(path);
    return await Promise.resolve({ status, body: JSON.stringify({ resources: KINDS }) });
  };
  const list = async (resource: Resource, options: ListOptions = {}) => {
    const { namespace, labelSelector, limit = Number.POSITIVE_INFINITY } = options;
    const { mostBytes = Number.POSITIVE_INFINITY } = options;
    asked.push(`${pathOf(resource, { namespace })}?${labelSelector}`);
    options.abort?.throwIfAborted();
    limits?.push(limit);
    if (error !== undefined) throw error;
    if (isForbidden) throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden' });
    const start = Number(options.continue ?? 0);
    const end = start + limit;
    const next = end < objects.length ? String(end) : last;
    const metadata = next === undefined ? {} : { continue: next };
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
  const { client, check } = partsOf(more, server, asked);
  return await askResources(client, check, new AbortController().signal, { roundMs });
}

function partsOf(
  more: Partial<ResourceCheck>,
  server: Server,
  asked: string[] = [],
): { readonly client: KubeClient; readonly check: ResourceCheck } {
  const check: ResourceCheck = {
    kind: 'resources',
    name: 'databases',
    apiVersion: 'apps/v1',
    objectKind: 'StatefulSet',
    expression: 'object.status.readyReplicas == object.spec.replicas',
    ...more,
  };
  return { client: serving(server, asked), check };
}

/** Returns so many times the number of replicas that a StatefulSet of these tests wants. */
const triples = (count: number): number[] => Array.from({ length: count }, () => 3);

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
      ...SECRETS,
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
    'values of Secrets stay hidden in errors',
    { ...SECRETS, expression: 'object.data.token == "x"' },
    { objects: sets(3) },
    {
      state: 'unknown',
      message: 'db/s0: the expression cannot be evaluated for this Secret',
    },
  ],
  [
    'an error about Secrets stays hidden',
    SECRETS,
    { error: new Error('unexpected token c2Vj') },
    { state: 'unknown', message: 'the API server gave no usable answer about the Secrets' },
  ],
  [
    'nothing is compared',
    { expression: 'has(object.spec.paused)' },
    { objects: sets(3) },
    { state: 'failing', message: '1 of 1 StatefulSet objects fail: db/s0' },
  ],
  [
    'a kind without namespaces',
    { objectKind: 'StorageClass', expression: 'true' },
    { objects: [{ metadata: { name: 'fast' } }] },
    { state: 'passing', message: 'all 1 StorageClass objects pass' },
  ],
  [
    'an empty text in place of the next page',
    {},
    { objects: sets(3), last: '' },
    { state: 'passing', message: 'all 1 StatefulSet objects pass' },
  ],
  [
    'the right is missing for a kind of the core group in all namespaces',
    SECRETS,
    { isForbidden: true },
    {
      state: 'unknown',
      message:
        'Refit lacks the right to list secrets in all namespaces; grant it with the value health.resources of the chart, or a role of your own',
    },
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

test('pages grow while they fit, shrink if they do not, and grow again after four pages that fit', async () => {
  const limits: number[] = [];
  const objects = Array.from({ length: 1_400 }, (_each, index) =>
    large(index, index >= 1_250 && index < 1_255 ? 2_000_000 : 10),
  );
  await ask({ expression: 'true' }, { objects, limits, got: [] });
  const growing = [50, 100, 200, 400, 500];
  // Only four of the large objects fit on a page.
  const shrinking = [500, 125, 32, 8];
  const later = [2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 32, 32];
  expect(limits).toEqual([...growing, ...shrinking, ...later]);
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

test('the usual limit of a round allows thousands of objects', async () => {
  const { client, check } = partsOf({ expression: 'true' }, { objects: sets(...triples(2_000)) });
  const { message } = await askResources(client, check, new AbortController().signal);
  expect(message).toBe('all 2000 StatefulSet objects pass');
});

/** An expression that needs some milliseconds for the object. */
const SLOW = 'object.list.all(a, object.list.all(b, a + b >= 0))';
const slow = { metadata: { name: 's' }, list: Array.from({ length: 60 }, (_each, index) => index) };

test('the message shows how much time a round may take', async () => {
  const { message } = await ask({ expression: SLOW }, { objects: [slow, slow] }, [], 0.1);
  expect(message).toBe(
    'the evaluation was stopped: it took more than 0.0001 s of CPU time for 1 objects',
  );
});

test('a check that is aborted asks nothing more, and has no result', async () => {
  const asked: string[] = [];
  const stop = new AbortController();
  const { client, check } = partsOf(
    { expression: SLOW },
    { objects: triples(50).map(() => slow) },
    asked,
  );
  const asking = askResources(client, check, stop.signal);
  setTimeout(() => stop.abort(new Error('no longer needed')), 1);
  await expect(asking).rejects.toThrow('no longer needed');
  expect(asked).toHaveLength(2);
  await expect(askResources(client, check, stop.signal)).rejects.toThrow('no longer needed');
  expect(asked).toHaveLength(2);
});

test('an error about objects that are no Secrets is told', async () => {
  await expect(ask({}, { error: new Error('no route') })).rejects.toThrow('no route');
});

test('a check of Secrets that is aborted has no result', async () => {
  const stop = new AbortController();
  const { client, check } = partsOf(SECRETS, {});
  const list = async () => {
    stop.abort();
    return await Promise.reject(new Error('no longer needed'));
  };
  const asking = askResources({ ...client, list } as KubeClient, check, stop.signal);
  await expect(asking).rejects.toThrow('no longer needed');
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
