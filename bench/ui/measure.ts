/** Measures what a browser loads for the dashboard: the script and the style, compressed. */
import { gzipSync } from 'node:zlib';
import { type UiFiles, uiFiles } from '../../src/cli/dashboard/bundle.ts';
import { type Findings, formatNumber } from '../figures.ts';

const KIB = 1024;

export async function measureUi(): Promise<Findings> {
  return uiFindings(await uiFiles());
}

export function uiFindings({ script, style }: UiFiles): Findings {
  const files = [
    { name: 'ui.js', text: script },
    { name: 'ui.css', text: style },
  ].map(({ name, text }) => ({
    name,
    plain: Buffer.byteLength(text) / KIB,
    compressed: gzipSync(text, { level: 9 }).length / KIB,
  }));
  const sizes = files.map(({ name, compressed }) => `${formatNumber(compressed)} KiB of ${name}`);
  return {
    figures: [
      {
        key: 'ui.bundleKiBCompressed',
        value: files.reduce((sum, { compressed }) => sum + compressed, 0),
        unit: 'KiB',
        goal: { bound: 'most', limit: 150 },
        madeOf: `${sizes.join(' + ')}, with gzip`,
      },
    ],
    details: [
      {
        title: 'Files of the dashboard, in KiB',
        header: ['FILE', 'PLAIN', 'COMPRESSED'],
        rows: files.map(({ name, plain, compressed }) => [
          name,
          formatNumber(plain),
          formatNumber(compressed),
        ]),
      },
    ],
  };
}
