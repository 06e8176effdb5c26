/**
 * Proves that Jobs have the stamps that the library of the original writes, and when a Job counts as made from another
 * template.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { annotated, type Job } from '../../../kube/resources.ts';
import { isOutdated, STAMP_ANNOTATION, stamped } from './stamps.ts';

const plan = buildCattlePlan('p');
const jobWith = (template: unknown, annotations: Record<string, string> = {}): Job => ({
  metadata: { name: 'job', labels: { own: 'label' }, annotations },
  spec: { template },
});
const made = (template: unknown): Job => stamped(jobWith(template), 'controller', plan);
const packed = (text: string): string => gzipSync(text).toString('base64');

/** Creates a Job from this template, and returns the template in the stamp of the Job. */
function recorded(template: unknown): unknown {
  const text = made(template).metadata.annotations?.[STAMP_ANNOTATION] ?? '';
  const applied = JSON.parse(gunzipSync(Buffer.from(text, 'base64')).toString()) as Job;
  return applied.spec?.['template'];
}

test('the stamp keeps the labels and annotations of the Job', () => {
  const { labels, annotations } = stamped(jobWith({}, { why: 'x' }), 'controller', plan).metadata;
  expect(labels).toMatchObject({ own: 'label' });
  expect(annotations).toMatchObject({
    why: 'x',
    'objectset.rio.cattle.io/id': 'controller',
    'objectset.rio.cattle.io/owner-name': 'p',
    'objectset.rio.cattle.io/owner-namespace': 'system-upgrade',
  });
});

test('the hash of the set is of the controller, and of name and namespace of the Plan', () => {
  const { namespace: _, ...homeless } = plan.metadata;
  const hashes = [
    stamped(jobWith({}), 'controller', plan),
    stamped(jobWith({}), 'other', plan),
    stamped(jobWith({}), 'controller', buildCattlePlan('q')),
    stamped(jobWith({}), 'controller', { ...plan, metadata: homeless }),
  ].map(({ metadata }) => metadata.labels?.['objectset.rio.cattle.io/hash']);
  expect(new Set(hashes).size).toBe(4);
  // The library computes the SHA-1 of `controllerupgrade.cattle.io/v1, Kind=Planp` without a namespace.
  expect(hashes[3]).toBe('8931ff5c594ab9cca6f2f48bf25e45858d729578');
});

describe('what the library cuts', () => {
  const long = 'x'.repeat(70);
  const short = 'x'.repeat(64);

  test('a text of 64 bytes stays, and a longer one is cut to them', () => {
    expect(recorded({ a: short, b: long, c: 'é'.repeat(40) })).toEqual({
      a: short,
      b: short,
      c: 'é'.repeat(32),
    });
  });

  test('a character that is cut in the middle becomes one U+FFFD for each of its bytes', () => {
    expect(recorded({ a: `${'x'.repeat(62)}€€`, b: `${'x'.repeat(63)}é` })).toEqual({
      a: `${'x'.repeat(62)}\uFFFD\uFFFD`,
      b: `${'x'.repeat(63)}\uFFFD`,
    });
  });

  test('an object in a list keeps its own names, kinds and paths of mounts, and no others', () => {
    const item = { name: long, value: long, from: { kind: long, path: long } };
    const kept = { name: long, value: short, from: { kind: short, path: short } };
    expect(recorded({ list: [item] })).toEqual({ list: [kept] });
  });

  test('a text in a list stays whole, so the original finds its arguments unchanged', () => {
    const template = { args: [long], lists: [[long], { name: [long] }] };
    expect(recorded({ name: long, ...template })).toEqual({ name: short, ...template });
  });

  test('numbers, booleans and missing values stay', () => {
    const template = { number: 0o644, truth: true, nothing: null, list: [1, false] };
    expect(recorded(template)).toEqual(template);
  });
});

test.each<[string, unknown, unknown, boolean]>([
  ['the same template', { image: 'a' }, { image: 'a' }, false],
  ['another image', { image: 'a' }, { image: 'b' }, true],
  ['one more item', { list: ['a'] }, { list: ['a', 'b'] }, true],
  ['empty members that Go writes', { image: 'a', resources: {} }, { image: 'a' }, false],
  ['empty members in a list', { list: [{ a: 1, b: '' }] }, { list: [{ a: 1 }] }, false],
  ['an empty item of a list, which has a place', { list: ['', 'a'] }, { list: ['a'] }, true],
  ['empty members deep inside', { a: { b: 1, c: false } }, { a: { b: 1 } }, false],
])('a Job is outdated if its template differs: %s', (_name, was, is, wanted) => {
  expect(isOutdated(made(was), made(is))).toBe(wanted);
});

test.each<[string, string | undefined]>([
  ['without a stamp', undefined],
  ['with a stamp that is not compressed', 'text'],
  ['with a stamp that is no JSON', packed('text')],
  ['with a stamp of another shape', packed('{"spec":{}}')],
  ['with a stamp of nothing', packed('null')],
  ['with a stamp that is too big to read', packed(JSON.stringify(bigJob()))],
])('a Job %s is never outdated', (_name, stamp) => {
  const job = jobWith({ image: 'a' });
  const marked = stamp === undefined ? job : annotated(job, { [STAMP_ANNOTATION]: stamp });
  expect(isOutdated(marked, made({ image: 'b' }))).toBe(false);
  const { annotations: _, ...metadata } = job.metadata;
  expect(isOutdated({ ...job, metadata }, made({ image: 'b' }))).toBe(false);
});

function bigJob(): Job {
  return jobWith({ image: 'a'.repeat(1 << 20) });
}
