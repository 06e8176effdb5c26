/**
 * Writes and reads the annotations that the library of the original controller adds to each object that it applies.
 * Because of these annotations, the original recognizes Refit's Jobs and does not change them.
 */
import { hash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { annotated, type Job } from '../../../kube/resources.ts';
import { ifPossible } from '../../../util/errors.ts';
import { isRecord, parseJson, sameJson } from '../../../util/json.ts';

const PREFIX = 'objectset.rio.cattle.io';
/** The annotation with the applied Job, compressed. */
export const STAMP_ANNOTATION = `${PREFIX}/applied`;
const OWNER_KIND = 'upgrade.cattle.io/v1, Kind=Plan';
/** The most bytes of a text in a member of an object. The library cuts longer texts. */
const MOST = 64;
/** The library does not cut the values of these keys in an object that is an item of a list. */
const WHOLE = new Set(
  'apiVersion containerPort devicePath ip kind mountPath name port topologyKey type'.split(' '),
);
/** Options that make zlib use a fraction of its usual memory, which matters for thousands of Jobs. The output is not larger. */
const PACKING = { windowBits: 12, memLevel: 3, chunkSize: 4096 };
/**
 * The most bytes of a Job that Refit unpacks from the annotation. The limit is needed because everybody with the right
 * to write Jobs can set the annotation.
 */
const MOST_JSON_BYTES = 1 << 20;

export function stamped(job: Job, controller: string, { metadata }: CattlePlan): Job {
  const { name, namespace = '' } = metadata;
  const digest = hash('sha1', `${controller}${OWNER_KIND}${name}${namespace}`);
  const labels = { ...job.metadata.labels, [`${PREFIX}/hash`]: digest };
  const annotations = {
    ...job.metadata.annotations,
    [`${PREFIX}/id`]: controller,
    [`${PREFIX}/owner-gvk`]: OWNER_KIND,
    [`${PREFIX}/owner-name`]: name,
    [`${PREFIX}/owner-namespace`]: namespace,
  };
  const object = { ...job, metadata: { ...job.metadata, labels, annotations } };
  const packed = gzipSync(JSON.stringify(cut(object)), PACKING).toString('base64');
  return annotated(object, { [STAMP_ANNOTATION]: packed.replaceAll('=', '') });
}

/**
 * Returns true if the Job was made from another pod template than `wanted`. Returns false for a Job
 * without a stamp, because its template is not known.
 */
export function isOutdated(job: Job, wanted: Job): boolean {
  const was = templateOf(job);
  const is = templateOf(wanted);
  return was !== undefined && !sameJson(was, is);
}

function templateOf({ metadata }: Job): unknown {
  return ifPossible(() => {
    const packed = Buffer.from(metadata.annotations?.[STAMP_ANNOTATION] ?? '', 'base64');
    const applied = parseJson(
      gunzipSync(packed, { maxOutputLength: MOST_JSON_BYTES }).toString(),
    ) as Job | undefined;
    return withoutZeros(applied?.spec?.['template']);
  });
}

/** Cuts the texts as the library does. It keeps each text that is itself an item of a list, such as an argument. */
function cut(value: unknown, isItem = false): unknown {
  if (Array.isArray(value))
    return value.map((item: unknown) => (typeof item === 'string' ? item : cut(item, true)));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([key, member]) => [
    key,
    typeof member === 'string' && !(isItem && WHOLE.has(key)) ? firstBytes(member) : cut(member),
  ]);
  return Object.fromEntries(members);
}

/** Returns the first bytes of the text. Go writes U+FFFD for each byte of a character that is cut in the middle. */
function firstBytes(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MOST) return text;
  let end = MOST;
  // Each byte of a character except its first byte begins with the bits 10.
  while (((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end--;
  return `${bytes.subarray(0, end).toString()}${'\uFFFD'.repeat(MOST - end)}`;
}

/** Returns the value without empty members. Go writes some empty members and omits others, so they cannot be compared. */
function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(
    ([key, member]) => [key, withoutZeros(member)] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => !isZero(member)));
}

/** Returns true for a value that Go omits when it writes an optional field. */
export function isZero(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isRecord(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}
