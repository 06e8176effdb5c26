/** Reads the arguments of `npm run test:real`: which projects of vitest run, and on which release of Kubernetes. */
import { RefitError } from '../../src/util/errors.ts';
import { CHOICE, RELEASES, releaseOf } from './releases.ts';

/** The projects of the second tier (vitest.config.ts). */
const ALL = ['computed', 'programs', 'runs', 'conformance', 'testenv', 'rights'];
/** The projects whose results depend on the release of Kubernetes. */
const ON_A_RELEASE = ['conformance', 'testenv'];
const OPTION = '--kubernetes';

export const HELP = `Usage: npm run test:real -- [${OPTION} v1.NN] [arguments of vitest]

Runs the second tier of the tests. The control plane is built first, into a cache outside the repository.

  ${OPTION} v1.NN   run only the projects ${ON_A_RELEASE.join(' and ')}, on this minor version of Kubernetes:
                        ${[...RELEASES.keys()].join(', ')}
  --help                this text
`;

export interface RealTests {
  readonly projects: readonly string[];
  /** The arguments that vitest gets in addition to the projects. */
  readonly others: readonly string[];
  /** The variables that differ from those of this process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns what is to run. Throws REFIT_USAGE if `--kubernetes` names no minor version that has a manifest, or stands
 * there twice.
 */
export function realTestsOf(args: readonly string[]): RealTests {
  const isOption = (arg: string): boolean => arg === OPTION || arg.startsWith(`${OPTION}=`);
  const at = args.findIndex(isOption);
  if (at === -1) return { projects: ALL, others: args, environment: {} };
  const isSplit = args[at] === OPTION;
  const minor = isSplit ? (args[at + 1] ?? '') : (args[at] ?? '').slice(OPTION.length + 1);
  releaseOf(minor, OPTION);
  if (args.slice(at + 1).some(isOption))
    throw new RefitError(
      'REFIT_USAGE',
      `${OPTION} wants one minor version, found it more than once: run the command once for each version`,
    );
  return {
    projects: ON_A_RELEASE,
    others: args.toSpliced(at, isSplit ? 2 : 1),
    // The programs of KUBEBUILDER_ASSETS would be used in place of those of the chosen release.
    environment: { [CHOICE]: minor, KUBEBUILDER_ASSETS: undefined },
  };
}
