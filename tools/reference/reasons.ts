/** Writes the reference page of the reasons for what Refit does, waits for, or refuses. */
import { REASONS } from '../../src/engine/model/reasons.ts';

export function reasonReference(): string {
  const rows = Object.entries(REASONS).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return `${[
    '# Reasons',
    '',
    'Made from `src/engine/model/reasons.ts` by `npm run generate`: change it there. The same code stands in events on plans and nodes,',
    'in the log, in [metrics](metrics.md), in conditions and in `refit status`; a sentence beside it names the field or node, what was found and what would be right.',
    '',
    '| reason | meaning |',
    '|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
