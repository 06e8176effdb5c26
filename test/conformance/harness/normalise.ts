/**
 * Removes what may differ between two servers with the same behavior: identities, times, revisions, and a few additions
 * of a real cluster. Only this file defines what the comparison ignores.
 */
import { isRecord } from '../../../src/util/json.ts';
import { ON_USUAL_RELEASE, whyNotSince } from '../../testenv/since.ts';
import type { Observation } from './run-case.ts';

/**
 * The API server in memory has the words of the usual release. Other releases say the same in other words, such as
 * `63 bytes` in place of `63 characters`.
 */
const HAS_OTHER_WORDS = !ON_USUAL_RELEASE;

/** Before v1.33, pods have no `metadata.generation`. */
const NUMBERS_PODS = whyNotSince(33, 'counts the generations of pods') === undefined;
/** Before v1.34, templates of pods have `metadata.creationTimestamp: null`. */
const LEAVES_OUT_NO_TIME = whyNotSince(34, 'leaves out times that are none') === undefined;

/**
 * The annotations and taints that controllers of a real cluster write to every node at any time. The API server does
 * not write them.
 */
const CONTROLLERS_ANNOTATIONS = ['node.alpha.kubernetes.io/ttl'];
const CONTROLLERS_TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unschedulable'];

/** Members that only the real server can compute and no client needs. */
const UNCOMPARED = ['storageVersionHash'];

/** Numbers in messages that count revisions of the whole server. */
const REVISIONS_IN_MESSAGES: readonly [RegExp, string][] = [
  [/too old resource version: (\d+) \(\d+\)/g, 'too old resource version: $1 (…)'],
  [
    /Too large resource version: (\d+), current: \d+/g,
    'Too large resource version: $1, current: …',
  ],
];

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** In milliseconds. A time that is closer to the present counts as set by the server during the test. */
const RECENT = 30 * 60_000;

/** Returns a transcript in a form that can be compared with the transcript of another server. */
export function normalise(observations: readonly Observation[]): unknown[] {
  const revisions = objectRevisions(observations);
  const uids = new Map<string, string>();
  return observations.map((observation) => {
    const managed = 'managedFields' in observation && observation.managedFields;
    const plain = withoutNoise(observation, { revisions, managed });
    const text = JSON.stringify(plain).replaceAll(UUID, (uid) => {
      if (!uids.has(uid)) uids.set(uid, `<uid ${uids.size + 1}>`);
      return uids.get(uid) ?? '';
    });
    return JSON.parse(text) as unknown;
  });
}

interface Context {
  /** The revisions of the objects that the case has received, in ascending order. */
  readonly revisions: readonly number[];
  readonly managed: boolean;
}

function withoutNoise(observation: Observation, context: Context): unknown {
  if ('events' in observation)
    return { ...observation, events: observation.events.map((event) => clean(event, context)) };
  const { anyMessage, managedFields: _managedFields, body, ...rest } = observation;
  const result = clean(body, context);
  if (isRecord(result) && (anyMessage || (HAS_OTHER_WORDS && result['kind'] === 'Status')))
    return { ...rest, body: withoutMessages(result) };
  return { ...rest, body: result };
}

function withoutMessages(status: Record<string, unknown>): unknown {
  const { message: _message, details, ...rest } = status;
  if (!isRecord(details) || !Array.isArray(details['causes'])) return { ...rest, details };
  const texts = details['causes'].map((cause) =>
    JSON.stringify({ ...asRecord(cause), message: undefined }),
  );
  // The messages may have been the only difference.
  const causes = [...new Set(texts)].toSorted().map((text) => JSON.parse(text) as unknown);
  return { ...rest, details: { ...details, causes } };
}

function prepare(value: Record<string, unknown>, context: Context): Record<string, unknown> {
  if (value['kind'] === 'Status') return orderCauses(value);
  if (value['kind'] === 'Table') return cleanTable(value, context);
  return isRecord(value['metadata']) ? cleanObject(value, context) : value;
}

function clean(value: unknown, context: Context): unknown {
  if (Array.isArray(value)) return value.map((item) => clean(item, context));
  if (typeof value === 'string') return cleanText(value);
  if (!isRecord(value)) return value;
  const prepared = prepare(value, context);
  const compared = Object.entries(prepared).filter(
    ([key, item]) =>
      !(UNCOMPARED.includes(key) || (key === 'creationTimestamp' && hasNoTime(item))),
  );
  return Object.fromEntries(compared.map(([key, item]) => [key, clean(item, context)]));
}

const hasNoTime = (time: unknown): boolean => !LEAVES_OUT_NO_TIME && time === null;

function cleanText(text: string): string {
  if (TIME.test(text) && Math.abs(Date.parse(text) - Date.now()) < RECENT) return '<now>';
  return REVISIONS_IN_MESSAGES.reduce(
    (result, [pattern, replacement]) => result.replaceAll(pattern, replacement),
    text,
  );
}

function cleanObject(
  object: Record<string, unknown>,
  { revisions, managed }: Context,
): Record<string, unknown> {
  const { managedFields, resourceVersion, ...metadata } = object['metadata'] as Record<
    string,
    unknown
  >;
  const result: Record<string, unknown> = { ...metadata };
  if (managed) result['managedFields'] = managedFields;
  if (!NUMBERS_PODS && 'containers' in asRecord(object['spec'])) delete result['generation'];
  if (typeof resourceVersion === 'string') {
    const seen = revisions.filter((revision) => revision <= Number(resourceVersion)).length;
    result['resourceVersion'] = isObject(object)
      ? `<revision ${seen}>`
      : `<revision ${seen} or later>`;
  }
  if (metadata['generateName'] !== undefined)
    result['name'] = String(metadata['name']).replace(/.{5}$/, '*****');
  if (metadata['continue'] !== undefined && metadata['continue'] !== '')
    result['continue'] = '<continue>';
  const cleaned = { ...object, metadata: result };
  return 'daemonEndpoints' in asRecord(object['status']) ? withoutControllers(cleaned) : cleaned;
}

/** Short ages differ because two servers read the clock at different times. */
const SHORT_AGE = /^\d{1,3}s$/;

/**
 * Removes the descriptions of the columns and short ages. The descriptions are texts for people, and kubectl does not
 * show them.
 */
function cleanTable(table: Record<string, unknown>, context: Context): Record<string, unknown> {
  const { columnDefinitions, rows, ...rest } = cleanObject(table, context);
  const columns = Array.isArray(columnDefinitions) ? columnDefinitions.map(asRecord) : undefined;
  const lines = Array.isArray(rows) ? rows.map(asRecord) : [];
  return {
    ...rest,
    columnDefinitions: columns?.map(({ description: _description, ...column }) => column) ?? null,
    rows: lines.map(({ cells, ...row }) => ({ ...row, cells: withoutShortAges(cells) })),
  };
}

function withoutShortAges(cells: unknown): unknown {
  if (!Array.isArray(cells)) return cells;
  return cells.map((cell) => (SHORT_AGE.test(String(cell)) ? '<age>' : (cell as unknown)));
}

const asRecord = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

function withoutControllers(node: Record<string, unknown>): Record<string, unknown> {
  const metadata = { ...asRecord(node['metadata']) };
  const spec = { ...asRecord(node['spec']) };
  const annotations = Object.entries(asRecord(metadata['annotations']));
  const own = annotations.filter(([key]) => !CONTROLLERS_ANNOTATIONS.includes(key));
  // The revision of a node may come from a write of a controller.
  metadata['resourceVersion'] = '<revision>';
  delete metadata['annotations'];
  if (own.length > 0) metadata['annotations'] = Object.fromEntries(own);
  const taints = Array.isArray(spec['taints']) ? spec['taints'] : [];
  const ownTaints = taints.filter(
    (taint) => !CONTROLLERS_TAINTS.includes(String(asRecord(taint)['key'])),
  );
  delete spec['taints'];
  if (ownTaints.length > 0) spec['taints'] = ownTaints;
  return { ...node, metadata, spec };
}

/**
 * Sorts the causes and removes duplicates. The real server lists causes in random order, and lists some causes twice,
 * because its checks overlap.
 */
function orderCauses(status: Record<string, unknown>): Record<string, unknown> {
  const details = asRecord(status['details']);
  if (!Array.isArray(details['causes'])) return status;
  const causes = [...new Set(details['causes'].map((cause) => JSON.stringify(cause)))].toSorted();
  const list = causes.map((cause) => JSON.parse(cause) as Record<string, unknown>);
  const bodies = list.map(({ field, message }) => `${String(field)}: ${String(message)}`);
  const [head = '', tail] = String(status['message']).split(/ is invalid: (.*)/s);
  const complete = tail !== undefined && bodies.every((body) => tail.includes(body));
  const message = complete ? `${head} is invalid: ${bodies.join(', ')}` : status['message'];
  return { ...status, message, details: { ...details, causes: list } };
}

/** Lists and bookmarks have a revision of the whole server. Objects have their own revisions. */
const isObject = (object: Record<string, unknown>): boolean =>
  asRecord(object['metadata'])['name'] !== undefined;

function objectRevisions(observations: readonly Observation[]): number[] {
  const found = new Set<number>();
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (!isRecord(value)) return;
    const { resourceVersion } = asRecord(value['metadata']);
    if (typeof resourceVersion === 'string' && isObject(value)) found.add(Number(resourceVersion));
    for (const item of Object.values(value)) visit(item);
  };
  for (const observation of observations)
    visit('events' in observation ? observation.events : observation.body);
  return [...found].sort((a, b) => a - b);
}
