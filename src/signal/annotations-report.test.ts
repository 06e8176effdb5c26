/** Tests that reports are decoded as they were encoded, and only together with the signal to which they belong. */
import { expect, test } from 'vitest';
import { type AgentReport, decodeReport, encodeReport, REASON_LIMIT } from './annotations.ts';
import { isFinal, REPORT_ANNOTATION, REPORTED_STATUSES } from './names.ts';

const report: AgentReport = {
  created: '2026-08-21T08:00:00Z',
  from: 'v1.36.3+k0s.0',
  spent: { Downloading: 1200, Cordoning: 4 },
  reason: 'sha256 of the download is aa, wanted bb',
  rolledBack: true,
  late: 'drain',
  refused: true,
};

test('a report comes back', () => {
  expect(decodeReport(encodeReport(report), report.created)).toEqual(report);
  expect(decodeReport(encodeReport({ created: 'c' }), 'c')).toEqual({ created: 'c' });
});

test.each(REPORTED_STATUSES.filter((status) => !isFinal(status)))(
  'the time that an agent spent in the status %s comes back',
  (status) => {
    const timed = { ...report, spent: { [status]: 1200 } };
    expect(decodeReport(encodeReport(timed), report.created)).toEqual(timed);
  },
);

test('a long reason is cut', () => {
  const long = { ...report, reason: 'x'.repeat(2 * REASON_LIMIT) };
  expect(encodeReport(long)[REPORT_ANNOTATION]).toContain(`"${'x'.repeat(REASON_LIMIT)}"`);
  expect(decodeReport(encodeReport(long), report.created)?.reason).toHaveLength(REASON_LIMIT);
});

test.each([
  ['no annotation', {}],
  ['one of another signal', encodeReport({ ...report, created: 'earlier' })],
  ['no JSON', { [REPORT_ANNOTATION]: '{' }],
  ['a list', { [REPORT_ANNOTATION]: '[]' }],
  ['null', { [REPORT_ANNOTATION]: 'null' }],
])('%s: no report', (_name, annotations) => {
  expect(decodeReport(annotations, report.created)).toBeUndefined();
});

test.each<[string, object, object]>([
  ['a reason', { reason: { toString: 1 } }, {}],
  [
    'a reason that is too long',
    { reason: 'x'.repeat(2 * REASON_LIMIT) },
    { reason: 'x'.repeat(REASON_LIMIT) },
  ],
  ['a version', { from: 7 }, {}],
  ['the field about the roll-back', { rolledBack: 'no' }, {}],
  ['the field about its time', { late: 'soon' }, {}],
  ['times', { spent: 'long' }, {}],
  ['one of the times', { spent: { Restart: '9', Cordoning: 4 } }, { spent: { Cordoning: 4 } }],
  ['what nobody knows', { mood: 'good' }, {}],
])('%s of the wrong kind is left out', (_name, written, read) => {
  const annotations = { [REPORT_ANNOTATION]: JSON.stringify({ created: 'c', ...written }) };
  expect(decodeReport(annotations, 'c')).toEqual({ created: 'c', ...read });
});

test('no annotations at all: no report', () => {
  expect(decodeReport(undefined, report.created)).toBeUndefined();
});
