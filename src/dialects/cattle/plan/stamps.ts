/** What the original's library writes on every object that it applies: with it, the original knows our Jobs and leaves them alone. */
import { hash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { annotated, type Job } from '../../../kube/resources.ts';
import { ifPossible } from '../../../util/errors.ts';
import { isRecord, parseJson, sameJson } from '../../../util/json.ts';
import { isZero } from './latest.ts';

const PREFIX = 'objectset.rio.cattle.io';
/** The Job as it was applied, packed. */
export const STAMP_ANNOTATION = `${PREFIX}/applied`;
const OWNER_KIND = 'upgrade.cattle.io/v1, Kind=Plan';
/** Bytes that stay of a text. */
const MOST = 64;
/** In items of lists the values of these keys stay whole. */
const WHOLE = new Set(
  'apiVersion containerPort devicePath ip kind mountPath name port topologyKey type'.split(' '),
);
/** A fraction of zlib's usual memory, for each of thousands; as small in the end. */
const PACKING = { windowBits: 12, memLevel: 3, chunkSize: 4096 };
/** Anybody who may write Jobs may write the stamp. */
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

/** True if the Job was made from another pod template than `wanted`. A Job without a stamp counts as made from the same. */
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

function cut(value: unknown, isKept = false, isInList = false): unknown {
  if (typeof value === 'string')
    return isKept || Buffer.byteLength(value) <= MOST
      ? value
      : Buffer.from(value).subarray(0, MOST).toString();
  if (Array.isArray(value)) return value.map((item) => cut(item, false, true));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([key, it]) => [
    key,
    cut(it, isInList && WHOLE.has(key), isInList),
  ]);
  return Object.fromEntries(members);
}

/** Go writes some members that are empty. */
function withoutZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutZeros);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(
    ([key, member]) => [key, withoutZeros(member)] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => !isZero(member)));
}
