/** Tests every second configuration, so that two cores share the work. */
import { CONFIGURATIONS } from './configurations.ts';
import { testConfigurations } from './explored.ts';

testConfigurations(CONFIGURATIONS.filter((_, index) => index % 2 === 0));
