/** Explores every second configuration of the first tier, so that two cores share the work. */
import { CONFIGURATIONS } from './configurations.ts';
import { isOfFirstTier, testConfigurations } from './explored.ts';

testConfigurations(CONFIGURATIONS.filter(isOfFirstTier).filter((_, index) => index % 2 === 1));
