/** Tests that the figure of the dashboard counts both files in compressed form. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { uiFindings } from './measure.ts';

test('both files count as a browser would load them', () => {
  // One text that compression makes only a little smaller, and one text that it makes very small.
  const script = Array.from({ length: 4096 }, (_, index) => Math.sin(index)).join('');
  const style = 'a'.repeat(1024 * 1024);
  const sum = [script, style]
    .map((text) => gzipSync(text, { level: 9 }))
    .map((bytes) => ({ bytes: bytes.length, text: gunzipSync(bytes).length }));
  const [figure] = uiFindings({ script, style }).figures;
  expect(figure).toMatchObject({
    key: 'ui.bundleKiBCompressed',
    unit: 'KiB',
    goal: { bound: 'most', limit: 40 },
    value: sum.reduce((total, { bytes }) => total + bytes, 0) / 1024,
  });
  expect(figure?.value).toBeLessThan(sum.reduce((total, { text }) => total + text, 0) / 1024 / 2);
  expect(figure?.value).toBeGreaterThan(1);
});
