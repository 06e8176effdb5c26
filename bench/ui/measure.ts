/** Measures the page of the dashboard: what a browser loads for it, compressed, and what 5,000 nodes cost. */
import { gzipSync } from 'node:zlib';
import { type UiFiles, uiFiles } from '../../src/cli/dashboard/bundle.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { measurePage } from './measure-page.ts';

const KIB = 1024;

export async function measureUi(): Promise<Findings> {
  const { figures, details } = uiFindings(await uiFiles());
  return { figures: [...figures, ...(await measurePage())], details };
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
        goal: { bound: 'most', limit: 40 },
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
