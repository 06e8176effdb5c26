/** Writes the reference page of the reasons for what Refit does, waits for, or refuses. */
import { REASONS, type ReasonCode, remedyOf } from '../../src/engine/model/reasons.ts';

export function reasonReference(): string {
  const codes = Object.keys(REASONS) as ReasonCode[];
  const rows = codes.map(
    (code) =>
      `| \`${code}\` | ${REASONS[code]} | ${remedyOf(code) ?? 'It neither stops nor delays anything.'} |`,
  );
  return `${[
    '# Reasons',
    '',
    'Generated from `src/engine/model/reasons.ts` by `npm run generate`: edit it there. Events, logs, [metrics](metrics.md), conditions and',
    '`refit status` use the same codes. More on each: [runbook](../runbook.md). For kubeadm hosts, run `refit kubeadm apply` again where this page',
    'names `refit retry`; [Advice](advice.md) has the commands for each dialect.',
    '',
    '| reason | meaning | what ends it |',
    '|---|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
