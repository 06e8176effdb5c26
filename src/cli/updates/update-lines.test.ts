/**
 * Shows the text of `refit updates`: each time, also in the time zone of the windows, and how long it is until that
 * time.
 */
import { expect, test } from 'vitest';
import type { UpdateConfig } from '../../api/autopilot/update-config.ts';
import { TIME_ZONE_ANNOTATION } from '../../updates/config/read-config.ts';
import { withStatus } from '../../updates/status.ts';
import { updateLines } from './update-lines.ts';

const NOW = Date.UTC(2026, 10, 20, 8);
const WIDE = 300;

function configOf(name: string, zone?: string): UpdateConfig {
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name, ...(zone && { annotations: { [TIME_ZONE_ANNOTATION]: zone } }) },
    spec: { channel: 'stable' },
  };
}

function waiting(name: string, zone?: string): UpdateConfig {
  return withStatus(configOf(name, zone), {
    reason: 'WaitsForWindow',
    message: 'v1.36.3 is there',
    checkedAt: '2026-11-20T07:59:00Z',
    nextCheck: '2026-11-20T08:05:00Z',
    nextWindow: '2026-11-20T22:00:00Z',
  });
}

test('the next check and the next window, in UTC and in the time zone of the windows', () => {
  const [, row, ...notes] = updateLines([waiting('berlin', 'Europe/Berlin')], NOW, WIDE);
  expect(row).toMatch(/1 min ago +in 5 min +in 14 h$/);
  expect(notes).toEqual([
    '',
    'berlin: v1.36.3 is there',
    'berlin: next check at 2026-11-20T08:05:00Z (09:05 Europe/Berlin), window opens at 2026-11-20T22:00:00Z (23:00 Europe/Berlin)',
    '',
    'Times as of 2026-11-20T08:00:00Z (09:00 Europe/Berlin).',
  ]);
});

test.each([
  ['UTC', [waiting('a', 'UTC')]],
  ['no zone', [waiting('a')]],
  ['a zone that does not exist', [waiting('a', 'Europe/Atlantis')]],
])('%s: times in UTC alone', (_name, configs) => {
  const text = updateLines(configs, NOW, WIDE).join('\n');
  expect(text).toContain('window opens at 2026-11-20T22:00:00Z\n');
  expect(text).toContain('Times as of 2026-11-20T08:00:00Z.');
});

test('of two zones each counts for its own UpdateConfig only', () => {
  const configs = [waiting('a', 'Europe/Berlin'), waiting('b', 'Asia/Tokyo')];
  const text = updateLines(configs, NOW, WIDE).join('\n');
  expect(text).toContain('b: next check at 2026-11-20T08:05:00Z (17:05 Asia/Tokyo)');
  expect(text).toContain('(2026-11-21 07:00 Asia/Tokyo)');
  expect(text).toContain('Times as of 2026-11-20T08:00:00Z.');
});

test('without a moment that is ahead there is no line of times', () => {
  const lines = updateLines([configOf('a')], NOW, WIDE);
  expect(lines).toEqual([
    expect.stringMatching(/^NAME/),
    expect.stringMatching(/NotChecked +never$/),
    '',
    'a: no leader has checked it yet',
    '',
    'Times as of 2026-11-20T08:00:00Z.',
  ]);
});
