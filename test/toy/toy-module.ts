/** The module of the toy dialect: what the commands need to know about its plans. */
import type { SessionDialect } from '../../src/cli/contract/session-dialect.ts';
import { toy } from './toy-dialect.ts';

export const toyModule: SessionDialect = {
  name: 'toy',
  view: async () => await Promise.resolve(toy),
  process: { lease: { namespace: 'default', name: 'toy' }, eventComponents: ['toy'] },
  objects: undefined,
  steps: new Map([['Paint', 'apply']]),
  advice: {
    name: 'the studio',
    subject: undefined,
    limit: 'its paint has not dried within an hour',
    startOver: ({ name }) => `clear the record of ${name}`,
    again: ({ name }) => `mix the paint of ${name} again`,
    corrected: undefined,
    retry: { causes: 'see the wall' },
    goBack: ({ name }) => `scrape the paint of ${name} off`,
    runsHere: false,
  },
};
