/** Writes the reference page of the reasons for what Refit does, waits for, or refuses. */
import { REASONS } from '../../src/engine/model/reasons.ts';

export function reasonReference(): string {
  const rows = Object.entries(REASONS).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return `${[
    '# Reasons',
    '',
    'Generated from `src/engine/model/reasons.ts` by `npm run generate`: edit it there. Events, logs, [metrics](metrics.md), conditions and',
    '`refit status` use the same codes. What to do: [runbook](../runbook.md).',
    '',
    '| reason | meaning |',
    '|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
