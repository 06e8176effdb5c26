/** The module of the dialect of Rancher's system-upgrade-controller. */
import type { DialectModule } from '../../cli/contract/dialect-module.ts';
import { advice } from './advice.ts';

export const cattleModule: DialectModule = {
  name: 'cattle',
  view: async () => (await import('./plan/cattle-dialect.ts')).cattleView,
  process: { lease: undefined, eventComponents: [] },
  advice,
};
