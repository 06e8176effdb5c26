/** The titles of the groups in which the help shows the commands, in this order. What people type first comes first. */
export const GROUP_TITLES = {
  see: 'See what happens, and why:',
  before: 'Before an upgrade:',
  control: 'Control an upgrade:',
  run: 'Run Refit:',
  setUp: 'Set up Refit:',
} as const;
