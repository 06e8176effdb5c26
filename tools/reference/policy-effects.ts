/** Writes the reference page that says which fields of an UpgradePolicy have an effect on the plans of which dialect. */
import type { DialectName } from '../../src/api/refit/upgrade-policy.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { FieldEffect, PolicyField } from '../../src/engine/policy/policy-effects.ts';

const TITLES: Readonly<Record<DialectName, string>> = {
  autopilot: 'k0s',
  cattle: 'Plans of Rancher',
  kubeadm: 'kubeadm',
  capi: 'Cluster API',
};

const WORDS: Readonly<Record<FieldEffect['kind'], string>> = {
  works: 'yes',
  partly: 'in part',
  none: 'no',
};

export function policyEffectReference(): string {
  const [first] = MODULES;
  const fields = Object.keys(first?.policyEffects ?? {}) as PolicyField[];
  const notes: string[] = [];
  const rows = fields.map((field) => {
    const cells = MODULES.map(({ policyEffects: { [field]: effect } }) => {
      if (effect.kind === 'works') return WORDS.works;
      if (!notes.includes(effect.why)) notes.push(effect.why);
      return `${WORDS[effect.kind]} (${notes.indexOf(effect.why) + 1})`;
    });
    return `| \`${field}\` | ${cells.join(' | ')} |`;
  });
  return `${[
    '# Which fields of a policy have an effect',
    '',
    'Generated from `src/dialects/*/policy-effects.ts` by `npm run generate`: edit them there. [Policies](../guides/policy.md) explains the fields.',
    'Each number is a note below the table. `refit validate` warns about fields without an effect on plans that the policy may cover. If a',
    'policy covers such plans in the cluster, it has the condition `NoEffect`, and `status.noEffect` has the sentences for each kind of plans.',
    '',
    `| field of \`spec\` | ${MODULES.map(({ name }) => TITLES[name]).join(' | ')} |`,
    `|---|${MODULES.map(() => '---|').join('')}`,
    ...rows,
    '',
    '## Notes',
    '',
    ...notes.map((note, index) => `${index + 1}. ${note[0]?.toUpperCase()}${note.slice(1)}.`),
    '',
    'Some nodes drain themselves, and then ignore some fields of `drain`: see [Drain](../guides/policy/drain.md).',
  ].join('\n')}\n`;
}
