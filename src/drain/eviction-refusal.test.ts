/** Shows which refusals of evictions count as the same reason, and what people read about them. */
import { expect, test } from 'vitest';
import { refuse, refuseByBudget } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import type { Pod } from '../kube/resources.ts';
import { TransportError } from '../kube/status-error.ts';
import { refusalOf } from './eviction-refusal.ts';

const POD = buildPod('web-0', { uid: 'uid-0' });
const OTHER = buildPod('web-1', { uid: 'uid-1' });
const ELSEWHERE = buildPod('web-0', { uid: 'uid-2', namespace: 'shop' });

/** Returns the reasons of two refusals as texts, which are equal if the pods wait in the same queue. */
const linesOf = (...refusals: readonly (readonly [Error, Pod])[]): string[] =>
  refusals.map(([error, pod]) => refusalOf(error, pod).line);

function expectSameLine(...refusals: readonly (readonly [Error, Pod])[]): void {
  expect(new Set(linesOf(...refusals)).size).toBe(1);
}

function expectOwnLines(...refusals: readonly (readonly [Error, Pod])[]): void {
  expect(new Set(linesOf(...refusals)).size).toBe(refusals.length);
}

const forbidden = (message: string): Error => refuse({ code: 403, reason: 'Forbidden', message });
const terminating = refuse({
  code: 403,
  reason: 'Forbidden',
  details: { causes: [{ reason: 'NamespaceTerminating', message: 'it is being terminated' }] },
});
const gone = refuse({ code: 404, reason: 'NotFound' });

test('pods that the same budget blocks have the same reason, and each budget is another reason', () => {
  expectSameLine([refuseByBudget('web'), POD], [refuseByBudget('web', 'needs 9'), OTHER]);
  expectOwnLines(
    [refuseByBudget('web'), POD],
    [refuseByBudget('db'), POD],
    [refuseByBudget('web'), ELSEWHERE],
  );
});

test('the reason of a budget is told without the final full stop, and its words change with the numbers', () => {
  const refusal = refusalOf(refuseByBudget('web', 'needs 2 healthy pods.'), POD);
  expect(refusal.words).toBe('needs 2 healthy pods');
  expect(refusal.describe?.('default/web-0')).toBe(
    'PodDisruptionBudget default/web blocks default/web-0: it needs 2 healthy pods',
  );
});

test('each pod that is gone is a reason of its own, and people read nothing about it', () => {
  expectOwnLines([gone, POD], [gone, OTHER]);
  expectSameLine([gone, POD], [refuse({ code: 409, reason: 'Conflict' }), POD]);
  const { words, waitMs, describe } = refusalOf(gone, POD);
  expect({ words, waitMs, describe }).toEqual({ words: '', waitMs: 0, describe: undefined });
});

test('the pods of a namespace that is being deleted have the same reason, and each namespace has its own', () => {
  expectSameLine([terminating, POD], [terminating, OTHER]);
  expectOwnLines([terminating, POD], [terminating, ELSEWHERE]);
  const { words, describe } = refusalOf(terminating, ELSEWHERE);
  expect(words).toBe('');
  expect(describe?.('shop/web-0')).toBe(
    'namespace shop is being deleted, and its pods with it: shop/web-0',
  );
});

test('refusals that differ only in the name of the pod and in words with digits have the same reason', () => {
  expectSameLine(
    [forbidden('pods "web-0" is denied by rule 12ab of acme'), POD],
    [forbidden('pods "web-1" is denied by rule 7 of acme'), OTHER],
  );
  expectOwnLines(
    [forbidden('pods "web-0" is denied by rule 7 of acme'), POD],
    [forbidden('pods "web-0" is denied by rule 7 of emca'), POD],
    [forbidden('pods "web-0" is denied by rule x of acme'), POD],
  );
  expect(refusalOf(forbidden('rule 12ab of acme'), POD).words).toBe('rule # of acme');
});

test('refusals that differ only in a name of a pod without digits have the same reason', () => {
  expectSameLine(
    [forbidden('pods "web" is forbidden'), buildPod('web')],
    [forbidden('pods "db" is forbidden'), buildPod('db')],
  );
});

test('a refusal with a message that equals the words of the server in trouble is another reason', () => {
  expectOwnLines([forbidden('server'), POD], [new TransportError('server'), POD]);
});

test.each([
  new TransportError('no answer'),
  refuse({ code: 429, reason: 'TooManyRequests', message: 'no answer' }),
  refuse({ code: 503, reason: 'ServiceUnavailable', message: 'no answer' }),
  refuse({ code: 504, reason: 'Timeout', message: 'no answer' }),
])('all pods wait together for a server in trouble, which answered %s', (error) => {
  expectSameLine([error, POD], [new TransportError('other words'), ELSEWHERE]);
  const { words, describe } = refusalOf(error, POD);
  expect(words).toBe('no answer');
  expect(describe?.('default/web-0')).toBe(
    'the eviction of default/web-0 waits for the API server: no answer',
  );
});

test('an error of the server itself is a refusal, not a server in trouble', () => {
  const error = refuse({ code: 500, reason: 'InternalError', message: 'two budgets' });
  expect(refusalOf(error, POD).describe?.('default/web-0')).toBe(
    'the eviction of default/web-0 is refused: two budgets',
  );
});

test('causes with another reason do not count as a budget or as the end of a namespace', () => {
  const causes = [
    { reason: 'Other', message: 'The disruption budget web needs 2 healthy pods' },
    { reason: 'DisruptionBudget', message: 'in other words' },
  ];
  const error = refuse({ code: 403, reason: 'Forbidden', message: 'no', details: { causes } });
  expect(refusalOf(error, POD).describe?.('default/web-0')).toBe(
    'the eviction of default/web-0 is refused: no',
  );
});

test('the time that the server asks to wait is kept, and an error without such a time asks for none', () => {
  const details = { retryAfterSeconds: 7 };
  expect(refusalOf(refuse({ code: 429, reason: 'Busy', details }), POD).waitMs).toBe(7_000);
  expect(refusalOf(forbidden('no'), POD).waitMs).toBe(0);
  expect(refusalOf(new TransportError('no answer'), POD).waitMs).toBe(0);
});
