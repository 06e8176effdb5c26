/** The module of the toy dialect: what the commands need to know about its plans. */

import { z } from 'zod';
import type { CustomKind } from '../../src/api/crd.ts';
import type { DialectModule } from '../../src/cli/contract/dialect-module.ts';
import type { FileKind } from '../../src/cli/contract/file-kind.ts';
import type { Guidance } from '../../src/cli/contract/guidance.ts';
import { kubeadmModule } from '../../src/dialects/kubeadm/module.ts';
import { noEffect, WORKS } from '../../src/engine/policy/policy-effects.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { toy } from './toy-dialect.ts';

const painting: CustomKind = {
  resource: toy.plans,
  schema: z.strictObject({ data: z.record(z.string(), z.string()) }),
};

const paintings: FileKind = {
  form: 'object',
  holds: 'plans',
  kind: painting,
  judge: ({ metadata, data = {} }: KubeObject & { readonly data?: Record<string, string> }) => ({
    title: `painting ${metadata.name} can be painted`,
    problems: data['colour'] === undefined ? ['data.colour: is missing'] : [],
    warnings: data['colour'] === 'beige' ? ['data.colour: nobody sees beige'] : [],
  }),
  conflicts: () => [],
};

/** Returns the guidance for a person without a computer. */
function guidance(clause: string): Guidance {
  return { clause, commands: [] };
}

/** A module needs the name of its dialect in `DIALECT_NAMES`. The toy stands in for this edit with its type. */
export const toyModule: DialectModule<'toy'> = {
  name: 'toy',
  view: async () => await Promise.resolve(toy),
  process: { lease: undefined, eventComponents: ['toy'] },
  objects: undefined,
  steps: new Map([['Paint', 'apply']]),
  advice: {
    name: 'the studio',
    subject: undefined,
    limit: 'its paint has not dried within an hour',
    listing: 'the toy',
    startOver: ({ name }) => guidance(`clear the record of ${name}`),
    again: ({ name }) => guidance(`mix the paint of ${name} again`),
    corrected: undefined,
    retriesAborted: false,
    retriesGone: false,
    retry: { causes: 'see the wall' },
    goBack: ({ name }) => guidance(`scrape the paint of ${name} off`),
    otherVersion: () => undefined,
    effectOfHolds: () => undefined,
    backUp: 'take a photograph of the wall first',
    runsHere: false,
  },
  files: async () => await Promise.resolve([paintings]),
  commands: async () =>
    await Promise.resolve({
      processes: [{ name: 'studio', summary: 'Paints nodes.' }],
      tools: [
        {
          name: 'mix',
          summary: 'Mixes paint.',
          run: async (_flags, { write }) => await Promise.resolve(write('the paint is mixed\n')),
        },
      ],
    }),
  install: {
    name: 'easel',
    title: 'the easel for paintings',
    folders: ['base'],
    hasPayload: false,
  },
  upgrade: {
    kind: 'objects',
    load: async () => await Promise.resolve(async () => await Promise.resolve([])),
  },
  rollBack: { kind: 'byHand', instead: 'scrape the paint off' },
  objectRollBack: undefined,
  policyEffects: { ...kubeadmModule.policyEffects, retry: WORKS, soak: noEffect('paint dries') },
  readiness: async () => await kubeadmModule.readiness(),
  readyTarget: undefined,
  selfDrain: {
    drainer: 'a node with wet paint',
    node: 'a wet node',
    when: 'The leader does not drain nodes with wet paint',
    unread: ['order'],
  },
};
