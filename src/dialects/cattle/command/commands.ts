/** Lists the command for Plans of Rancher. */
import type { DialectCommands } from '../../../cli/contract/dialect-commands.ts';

export const rancherCommands: DialectCommands = {
  processes: [
    {
      name: 'system-upgrade-controller',
      summary:
        "Carries out Rancher's Plans in place of Rancher's controller. Environment variables configure it.",
      run: async (_flags, { abort }) =>
        await (await import('./system-upgrade-controller.ts')).runSystemUpgradeController(
          process.env,
          abort,
        ),
    },
  ],
  tools: [],
};
