/** Tests the text of a preview. */
import { expect, test } from 'vitest';
import { textOf } from '../../../test/support/builders/previews.ts';
import { toyModule } from '../../../test/toy/toy-module.ts';
import { autopilotModule } from '../../dialects/autopilot/module.ts';
import { cattleModule } from '../../dialects/cattle/module.ts';
import type { PlanTexts } from '../contract/session-dialect.ts';
import type { PlanPreview } from './view.ts';

function previewOf(dialect: string, texts: PlanTexts): PlanPreview {
  const noReturn = ['controllers cannot go back'];
  const plan = { kind: 'Plan', name: 'p', uid: '', id: '', stages: [], waits: [] } as const;
  return { ...plan, phase: 'new', dialect, texts, noReturn };
}

test.each([
  [
    'autopilot',
    autopilotModule,
    '; before the start, take a backup on a controller with `k0s backup --save-path DIRECTORY`, or set etcdSnapshot in a policy',
  ],
  ['toy', toyModule, '; take a photograph of the wall first'],
  ['cattle', cattleModule, ''],
])(
  'before a step that cannot be undone, a preview of a plan of %s has the advice of its module',
  (dialect, module, advice) => {
    expect(textOf(previewOf(dialect, module)).split('\n')).toContain(
      `  final    controllers cannot go back${advice}`,
    );
  },
);
